c
d
a
b
