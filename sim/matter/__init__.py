"""What explicit particle solvers share: particles, their order, laws, contact and the step."""
