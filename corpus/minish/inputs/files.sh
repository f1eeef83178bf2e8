echo one > f
echo two >> f
cat -n f
wc f
wc -l < f
ls
rm f g
ls
