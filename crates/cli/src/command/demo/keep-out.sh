case $(cat) in
  *secrets/*) printf '{"allow": false, "message": "secrets/ is off limits"}' ;;
  *) printf '{"allow": true}' ;;
esac
