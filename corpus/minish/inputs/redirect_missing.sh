cat < nothing
