/* Preloaded into a program whose server can only listen on all interfaces: it gets the loopback interface alone. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

int bind(int descriptor, const struct sockaddr *address, socklen_t length)
{
    int (*next)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "bind");
    struct sockaddr_in changed;

    if (address->sa_family == AF_INET && length >= sizeof changed) {
        memcpy(&changed, address, sizeof changed);
        if (changed.sin_addr.s_addr == htonl(INADDR_ANY)) {
            changed.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            return next(descriptor, (const struct sockaddr *)&changed, sizeof changed);
        }
    }
    return next(descriptor, address, length);
}
