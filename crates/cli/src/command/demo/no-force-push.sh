case $(cat) in
  *'push --force'*) printf '{"continue": false, "systemMessage": "Forced pushes rewrite what others have."}' ;;
  *) printf '{"continue": true}' ;;
esac
