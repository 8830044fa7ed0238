cat >/dev/null
printf '{"continue": true, "systemMessage": "Work on a branch; never push to main."}'
