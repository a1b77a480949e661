"""The data and settings that go from room to room; imports numpy alone where no file says more."""
