"""The entry point and its exit codes. Everything heavy is imported inside the command that needs it."""

from __future__ import annotations

import os
import signal
import sys

import spectune.cli.commands  # noqa: F401 (registers them)
from spectune.cli.exhausted import exhausted
from spectune.cli.exit_codes import ExitCode
from spectune.cli.program import app
from spectune.cli.silence import SILENCE
from spectune.cli.streams import open_standard_streams, print_error
from spectune.cli.title import hide_passwords
from spectune.errors import SpectuneError


def main() -> None:
    """Run the command line and end the process with its exit code."""
    hide_passwords()
    open_standard_streams()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C, at whatever it finds us
    SILENCE.begin()
    os.umask(os.umask(0o022) | 0o022)  # nothing of a study is for everybody to write
    try:
        app(standalone_mode=True)
    except SpectuneError as error:
        print_error(error)
        sys.exit(ExitCode.BAD_INPUT)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        SILENCE.end()
        sys.stderr.close()  # the reader of our output left; that is not an error of ours
        sys.exit(ExitCode.DONE)
    except OSError as error:  # the current folder is gone, the output device is full, …
        print_error(error)
        sys.exit(ExitCode.BAD_INPUT)
    except (MemoryError, SystemError, RuntimeError) as error:
        if (said := exhausted(error)) is None:
            raise
        print_error(SpectuneError(said))
        sys.exit(ExitCode.BAD_INPUT)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):  # what is left puts nothing in order, and may be cut short
            if signal.getsignal(number) is signal.default_int_handler:
                signal.signal(number, signal.SIG_DFL)
        SILENCE.end()
