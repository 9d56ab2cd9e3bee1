"""What a person is told who writes something wrong."""
