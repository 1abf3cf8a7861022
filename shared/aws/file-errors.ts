/** How a call of the bucket fails, apart from the client so that whoever tells faults apart needs no S3. */

/** The bucket did not take or give a file within the attempts of a call. The fault is the service's, never the file's. */
export class BucketUnavailable extends Error {
  override readonly name = "BucketUnavailable";
}

/** There is no such file, or it has been replaced. */
export class FileGone extends Error {
  override readonly name = "FileGone";
}
