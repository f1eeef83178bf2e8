last() { tail -1 | cut -d: -f2; }
echo "a:one  two" > f
echo "b:three  four" >> f
v="$(last < f)"
echo "[$v]"
