x="two  words"
echo "$x"
