"""Starts the command line: the script `rkcnn`, and `python -m rkcnn`."""

import os


def main() -> None:
    """Run one command and exit; Ctrl-C ends it without a message, from the first import to the last line."""
    try:
        from rkcnn.interrupt import install_interrupt_handler, restore_default_interrupt

        install_interrupt_handler()
        from rkcnn.cli import main as run_command
    except KeyboardInterrupt:
        os._exit(130)
    try:
        run_command()
    finally:
        restore_default_interrupt()


if __name__ == "__main__":
    main()
