# What `why debug` adds to gdb: the command `why`, with the verbs that the
# recording's server knows, and a prompt that shows the position.
import gdb

# Verbs that move to another instant behind gdb's back.
MOVES = {"goto", "snext", "sprev", "rollback", "switch", "set", "skip"}


def ask(line):
    """What the server answers to one of its verbs."""
    return gdb.execute("monitor " + line, to_string=True)


def connected():
    inferior = gdb.selected_inferior()
    return inferior is not None and inferior.pid != 0


def say_notice():
    notice = ask("notice")
    if notice:
        gdb.write("why: " + notice)


def look_again():
    """Makes gdb forget what it knew of the instant before."""
    for command in ("maintenance flush register-cache", "maintenance flush dcache"):
        gdb.execute(command, to_string=True)
    # Threads may have come and gone, and the running one is another.
    gdb.execute("info threads", to_string=True)
    running = int(ask("running"))
    for thread in gdb.selected_inferior().threads():
        if thread.ptid[1] == running:
            thread.switch()
    gdb.execute("sharedlibrary", to_string=True)
    gdb.execute("frame")


def set_slice_breakpoints():
    """A breakpoint at every address that some slice stops at; the server sees to
    it that only the executions in the slice are met."""
    there = {b.location for b in gdb.breakpoints() or ()}
    for address in ask("addresses").split():
        if "*" + address not in there:
            gdb.Breakpoint("*" + address)


class Why(gdb.Command):
    """Verbs of the recording: `why help` lists them."""

    def __init__(self):
        super().__init__("why", gdb.COMMAND_RUNNING)

    def invoke(self, argument, from_tty):
        words = argument.split()
        gdb.write(ask(argument or "help"))
        verb = words[0] if words else "help"
        if verb in MOVES:
            look_again()
        elif verb == "sbreak":
            set_slice_breakpoints()


def on_stop(event):
    say_notice()


def prompt(current):
    if not connected():
        return None
    say_notice()
    return "(why " + ask("position").strip() + ") "


Why()
gdb.events.stop.connect(on_stop)
gdb.prompt_hook = prompt
