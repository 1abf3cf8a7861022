/** The e-mail addresses of the demo users, in a separate file because the demo data itself takes long to load. */
export const demoUsers = [
  "owner@acme.test",
  "admin@acme.test",
  "rep@acme.test",
  "rep2@acme.test",
  "viewer@acme.test",
  "importer@acme.test",
  "owner@globex.test",
  "rep@globex.test",
] as const;
