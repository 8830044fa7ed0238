cat >/dev/null
printf '{"continue": true, "data": {"tools_used": 1}}'
