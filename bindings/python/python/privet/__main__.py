"""The command ``privet``."""

from __future__ import annotations

import signal
import sys

from . import _privet


def main() -> None:
    # As for any other command: Ctrl-C ends the process, and a server's own handler comes later.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _privet.set_program([sys.executable, "-m", "privet"])
    code = _privet.run_command(["privet", *sys.argv[1:]])
    sys.exit(code)


if __name__ == "__main__":
    main()
