"""Running a program several times: what varies, by how much, and which bound would hold."""
