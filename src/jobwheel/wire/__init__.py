"""The HTTP protocol between admin and executor: messages, three dialects, codec, token check, keep-alive client."""
