"""The command `heddle`."""
import signal
import sys


def main() -> int:
    from heddle import _core

    if sys.argv[1:2] in (["generate"], ["transcribe"]):
        from heddle.text import command

        return getattr(command, sys.argv[1])(sys.argv[2:])
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not ignored, as in a shell's background jobs
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the command cleans up behind itself
    return _core.command(["heddle", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
