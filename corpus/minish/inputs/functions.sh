f() { local x=inner; echo $x $1 $#; }
x=outer
f a b
echo $x
