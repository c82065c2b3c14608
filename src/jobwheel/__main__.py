"""`python -m jobwheel`."""


def main() -> None:
    """Run the command line."""
    raise SystemExit("not yet")


if __name__ == "__main__":
    main()
