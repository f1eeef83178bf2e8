x : y
	cp y x
@age x 5
@age y 1
