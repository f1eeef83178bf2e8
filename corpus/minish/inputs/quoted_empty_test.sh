if [ -n "$1" ]; then echo given; else echo none; fi
name="a b"
[ "$name" = "a b" ] && echo same
