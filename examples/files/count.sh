# Counts the words of a file, in the work directory of examples/files.yaml.
words=$(wc -w < "$1")
echo "$1 has $((words)) words"
