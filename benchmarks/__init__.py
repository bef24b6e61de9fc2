"""What is measured about spectune itself; every module is a command that prints a table.

CPU seconds are those of one core, so the threads of numpy's linear algebra are not to add theirs.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
