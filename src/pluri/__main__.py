"""``python -m pluri`` is the ``pluri`` command."""

from pluri.cli import main

if __name__ == "__main__":
    main()
