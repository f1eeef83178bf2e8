echo $# $1 $2
for a in $@; do echo $a; done
