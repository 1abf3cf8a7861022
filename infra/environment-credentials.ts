/** Takes the place of the SDK's credential chain in bundles, 95 KB of each: a function always has its credentials in the environment. */

interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export const defaultProvider = () => async (): Promise<Credentials> => {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = process.env;
  if (AWS_ACCESS_KEY_ID === undefined || AWS_SECRET_ACCESS_KEY === undefined) {
    throw new Error("the environment holds no AWS credentials");
  }
  return {
    accessKeyId: AWS_ACCESS_KEY_ID,
    secretAccessKey: AWS_SECRET_ACCESS_KEY,
    ...(AWS_SESSION_TOKEN !== undefined && { sessionToken: AWS_SESSION_TOKEN }),
  };
};
