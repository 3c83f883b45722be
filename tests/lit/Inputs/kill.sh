# kill.sh SECONDS COMMAND...: runs the command and kills it after a while. Ends well either way.
timeout -s KILL "$@" > /dev/null 2>&1
true
