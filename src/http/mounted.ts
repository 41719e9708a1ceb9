/** What is protected where a whole application is: requests that make or change something, if they have a key. */
export const MOUNTED: Readonly<{ required: false; methods: readonly string[] }> = {
  required: false,
  methods: ["POST", "PATCH"],
};
