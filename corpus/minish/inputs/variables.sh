a=1
b=$a$a
echo $b ${b}x ${c:-none} ${#b}
unset a
echo [$a]
