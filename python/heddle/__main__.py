"""The command `heddle`."""
import signal
import sys


def main() -> int:
    from heddle import _core

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the command cleans up behind itself
    return _core.command(["heddle", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
