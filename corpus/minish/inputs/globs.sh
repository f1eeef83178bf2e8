echo x > a.c
echo y > b.c
echo z > c.h
echo *.c ?.h *.none
ls *.c
