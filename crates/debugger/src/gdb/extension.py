import gdb


def ask(line):
    """What the recording's server answers to one of its verbs."""
    return gdb.execute("monitor " + line, to_string=True)
