x=word
echo "$x" "${x}s" "$((1 + 1))"
