case $(cat) in
  *'"command":"git push"'*) printf '{"decision": "modify", "modified_args": {"command": "echo rehearsed: git push"}}' ;;
esac
