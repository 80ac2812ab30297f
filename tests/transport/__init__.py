"""What errors of HTTP clients prove, against real sockets."""
