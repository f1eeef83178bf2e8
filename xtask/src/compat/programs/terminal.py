"""Runs a program in a terminal of its own, types, and says what became of it.

terminal.py WHAT [COMMAND ...]   WHAT is one of SCENES; COMMAND is put before the program's own
"""
import fcntl, os, pty, select, struct, sys, termios, time

LIMIT = 60  # seconds that a program may take to show what is waited for


class Terminal:
    def __init__(self, command):
        self.shown = b''
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.environ['TERM'] = 'xterm'
            os.execvp(command[0], command)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text)

    def read(self):
        """More of what is shown; false at the end."""
        if not select.select([self.master], [], [], 0.2)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.shown += data
        return bool(data)

    def wait_for(self, text):
        begin, end = len(self.shown), time.time() + LIMIT
        while text not in self.shown[begin:]:
            if time.time() > end or not self.read():
                sys.exit(f'{text} was not shown: {self.shown[-300:]}')

    def end(self):
        end = time.time() + LIMIT
        while self.read():
            if time.time() > end:
                sys.exit(f'it does not end: {self.shown[-300:]}')
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def vim(before):
    t = Terminal(before + ['vim', '-u', 'NONE', '-i', 'NONE', '-n', '-N', 'new.txt'])
    t.wait_for(b'new.txt')
    t.type(b'ihello from a terminal\rsecond\x1b')
    t.wait_for(b'second')
    t.type(b':s/second/2nd/\r:wq\r')
    print('vim', t.end(), open('new.txt').read())


def less(before):
    with open('lines.txt', 'w') as file:
        file.writelines(f'line {n}\n' for n in range(1, 501))
    t = Terminal(before + ['less', 'lines.txt'])
    t.wait_for(b'line 1')
    t.type(b'/line 321\r')
    t.wait_for(b'line 322')
    t.type(b'q')
    print('less', t.end())


def top(before):
    t = Terminal(before + ['top', '-d', '1'])
    t.wait_for(b'load average')
    t.type(b'q')
    print('top', t.end())


def size(before):
    text = """stty rows 24 columns 80; trap 'stty size; exit 3' WINCH; stty size; echo ready
        while :; do sleep 0.1; done"""
    t = Terminal(before + ['sh', '-c', text])
    t.wait_for(b'ready')
    t.resize(30, 100)
    print('size', t.end(), b'24 80' in t.shown, b'30 100' in t.shown)


SCENES = {scene.__name__: scene for scene in (vim, less, top, size)}
SCENES[sys.argv[1]](sys.argv[2:])
