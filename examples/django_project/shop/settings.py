import os

SECRET_KEY = os.environ.get("SHOP_SECRET_KEY", "for-this-example-alone")
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
INSTALLED_APPS = [
    "jobwheel.integrations.django",
    "orders",
]
MIDDLEWARE = [
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
]
ROOT_URLCONF = "shop.urls"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
USE_TZ = True

# The arguments of jobwheel.Executor; what is left out comes from JOBWHEEL_EXECUTOR_* in the environment.
JOBWHEEL_EXECUTOR = {"app_name": "django-example"}
