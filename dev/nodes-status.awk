# The table that dev/nodes-status.jq gives, in columns. With -v color=always what is out of the ordinary has a colour: a
# node that is not Ready or whose agent failed is red, one that is cordoned or whose agent is busy yellow, and an agent
# that is done green.
BEGIN {
	FS = "\t"
	code["READY", "False"] = code["READY", "Unknown"] = code["ANSWER", "error"] = 31
	code["CORDONED", "yes"] = code["ANSWER", "busy"] = 33
	code["ANSWER", "ready"] = 32
}
{
	line[NR] = $0
	for (i = 1; i <= NF; i++) if (length($i) > width[i]) width[i] = length($i)
}
END {
	split(line[1], head)
	for (r = 1; r <= NR; r++) {
		columns = split(line[r], cell)
		for (i = 1; i <= columns; i++) {
			shown = i < columns ? sprintf("%-*s  ", width[i], cell[i]) : cell[i]
			if (color == "always" && (head[i], cell[i]) in code) shown = "\033[" code[head[i], cell[i]] "m" shown "\033[0m"
			printf "%s", shown
		}
		print ""
	}
}
