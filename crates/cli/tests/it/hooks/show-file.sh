#!/bin/bash
input=$(cat)
file=$(echo "$input" | jq -r '.context.file')
cat "$file" >&2
cat "$file" > "LAB/shown"
printf '{"allow": true}'
