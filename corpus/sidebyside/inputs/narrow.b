a	short	line
