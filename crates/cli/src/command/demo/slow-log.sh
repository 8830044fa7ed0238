sleep 30
printf '{"continue": true}'
