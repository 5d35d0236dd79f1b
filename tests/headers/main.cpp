// That it links is the test.
int main() {}
