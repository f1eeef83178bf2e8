cut -d' ' -f3 | sort | uniq -c | sort -rn | head -2
