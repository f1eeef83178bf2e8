foo bar
echo $?
exit_me
