"""What the log of an SGLang server says, of any size and any version since 0.5.6."""

from spectune.engines.sglang.server_log.facts import ServerFacts
from spectune.engines.sglang.server_log.read_back import read_back
from spectune.engines.sglang.server_log.reader import read_open_log, read_server_log, read_server_logs

__all__ = [
    "ServerFacts",
    "read_back",
    "read_open_log",
    "read_server_log",
    "read_server_logs",
]
