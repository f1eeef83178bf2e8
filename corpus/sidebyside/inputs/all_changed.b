c
d
e
