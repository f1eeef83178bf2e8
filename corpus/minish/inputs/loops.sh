for i in 1 2 3; do echo n$i; done
i=0
while [ $i -lt 3 ]; do i=$((i + 1)); echo $i; done
