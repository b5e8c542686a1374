"""``grammask explain``"""

EXAMPLES = ""


def explain() -> None: ...
