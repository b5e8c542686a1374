"""``python -m grammask.cli``, for where the program is not on the path."""

from grammask.cli import main

main()
